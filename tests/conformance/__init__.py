"""The public test set of the language: cases for any implementation, and what runs them."""
