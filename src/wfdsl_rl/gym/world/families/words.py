"""Everyday words and names that questions are filled with: few, short, and none that is an article or a unit."""

WORDS = (
    *("apple", "banana", "bread", "bridge", "butter", "candle", "castle", "cherry", "circle", "cloud"),
    *("coffee", "cotton", "desert", "dinner", "doctor", "dragon", "engine", "farmer", "finger", "flower"),
    *("forest", "garden", "ginger", "guitar", "hammer", "honey", "island", "jacket", "kitten", "ladder"),
    *("lemon", "letter", "market", "mirror", "monkey", "mother", "number", "orange", "pencil", "pepper"),
    *("picture", "pillow", "pocket", "rabbit", "river", "rocket", "school", "silver", "spider", "spring"),
    *("square", "summer", "teacher", "ticket", "tiger", "tomato", "tunnel", "valley", "violin", "window"),
)
"""Sixty words of five to seven letters."""

WORD = "[a-z]{2,12}"
"""What may stand for a word in a user's own question."""
