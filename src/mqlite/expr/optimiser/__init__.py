"""The reference's optimisations, as far as one can tell that they happened (spec section 14).

They are part of the language: they decide which errors vanish and what counts against the budget.
"""

from .passes import optimise

__all__ = ["optimise"]
