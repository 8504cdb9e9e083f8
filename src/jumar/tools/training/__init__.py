"""`jumar train-check`: a look into a training run that does not converge."""
