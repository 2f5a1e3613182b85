"""Real servers on loopback: TensorBoard, storage, a Dask cluster."""
