"""What a trainer records of its own loop and of the machine, beside what PyTorch records."""

COMPOSER = "Composer"
