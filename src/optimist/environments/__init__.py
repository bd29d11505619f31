"""The stateful side: Gymnasium environments around the systems."""
