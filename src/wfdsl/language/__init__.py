"""The two forms of the language: from text to a tree, and back."""
