"""What a misspelt query probably means."""
