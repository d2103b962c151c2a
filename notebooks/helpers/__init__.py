"""What the notebooks use beside tcgpu: charts, answers, tables of records, models of the papers."""
