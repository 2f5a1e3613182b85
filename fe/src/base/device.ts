/** Kinds that people call by their own name; the others are GPUs. */
const OWN_NAMES = new Set(['XPU', 'HPU', 'NPU', 'MTIA', 'MPS', 'MAIA', 'XLA', 'IPU']);

/** What a device is called wherever people read it, as `device_name` of the Python side: "GPU 0", "HPU 1". */
export const deviceName = (kind: string, id: number | string): string =>
  `${OWN_NAMES.has(kind) ? kind : 'GPU'} ${id}`;
