"""Run the launches of a plan in the simulator and find their faults, as `tcgpu.insight.faults` defines them."""

from dataclasses import replace

from tcgpu.insight.faults import MOST_ROUNDS, Fault, check_launch
from tcgpu.insight.shadow_memory import Written
from tcgpu.kernels import Plan, Run, Scan, Sized, Step
from tcgpu.progress import part


class CheckedRun(Run):
    """A Run in the simulator that knows what its launches have written so far, and their faults."""

    def __init__(self, plan: Plan, most_rounds: int = MOST_ROUNDS) -> None:
        """most_rounds: of the loops of a thread, before it is taken for endless."""
        super().__init__(replace(plan, setup=()))
        self.most_rounds = most_rounds
        self.faults: list[Fault] = []
        self.steps = [*plan.setup, *plan.steps]
        self.allocate()
        self.written = Written(self.arrays[name] for name, (_, _, fill) in plan.created.items() if fill is None)

    def run(self, step: Step | Scan | Sized) -> None:
        """Run a step of the plan; its faults are added to `faults`."""
        if isinstance(step, Step):
            args = step.kernel.typed(step.values(self.arrays))
            shape, more = (step.blocks, step.threads), {"written": self.written, "most_rounds": self.most_rounds}
            self.faults += check_launch(step.kernel.py_func, *shape, args, shared=step.shared, **more)
        else:
            step.run(self.arrays)
            for name in step.written:
                self.written.fill(self.arrays[name])

    def run_all(self) -> int:
        """Run all steps, up to one that ends with a fault; returns the count."""
        for k, step in enumerate(self.steps):
            with part(k, len(self.steps)):
                self.run(step)
            if any(fault.ends for fault in self.faults):
                break
        return self.result()
