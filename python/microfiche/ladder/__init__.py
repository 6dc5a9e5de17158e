"""The ladder: what a context keeps verbatim, elides, drops, pages or leaves out, and the plan that says so."""
