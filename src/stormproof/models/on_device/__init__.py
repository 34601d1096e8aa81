"""What networks do on a device; its modules import torch, so they are imported when one is used."""
