"""The gym: four kinds of questions, seven simulated workers, and an optimum that is computed exactly.

Nothing here is a measurement of a real model, and whatever shows results of the gym says "simulated".
"""
