"""Views of a record for people. They are made of its entries alone and hold no fact of their own."""
