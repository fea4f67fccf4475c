"""Problems in the input as values: what they are, the table of codes, and how they are drawn."""
