"""What `tcgpu.methods` returns: a list of methods that prints as a table."""

from tcgpu.declarations import Method
from tcgpu.markup import Tabular


class Methods(Tabular[Method]):
    """Methods. Prints as a table with a row for each."""

    def table(self) -> list[list[str]]:
        """What the table shows, as texts."""
        rows = [["name", "source", "engines", "order", "knobs", "summary"]]
        for method in self:
            knobs = " ".join(f"{name}={default}" for name, default in method.knobs.items())
            rows.append([method.name, method.source, " ".join(method.engines), method.order, knobs, method.summary])
        return rows
