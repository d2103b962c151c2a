"""What people look at: the explorer, the stepper, and charts of measurements. Nothing below imports this folder."""
