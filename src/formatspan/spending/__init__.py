"""What tokens cost, and the purse that keeps a run within a budget."""
