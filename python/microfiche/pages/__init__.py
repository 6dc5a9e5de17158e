"""Text and turns as pages of glyphs."""
