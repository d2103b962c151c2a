"""The user interfaces: explorer, stepper, and charts of measurements. Kernels and API do not import this folder."""
