// How the causes of idle time are called and colored, and the work beside them.

interface Look {
  title: string;
  color: string;
}

/** Work is paler than idle time: the track of a device says where none runs. */
const WORK: Record<string, Look> = {
  compute: { title: 'Compute', color: 'color-mix(in srgb, var(--c-kernel) 22%, var(--sf))' },
  exposed_communication: {
    title: 'Exposed communication',
    color: 'color-mix(in srgb, var(--c-communication) 45%, var(--sf))',
  },
  exposed_copy: { title: 'Exposed copies', color: 'color-mix(in srgb, var(--c-memcpy) 45%, var(--sf))' },
};

const CAUSES: Record<string, Look> = {
  data_loading: { title: 'Data loading', color: 'var(--x-loading)' },
  compile: { title: 'Compilation', color: 'var(--x-compile)' },
  sync: { title: 'Synchronization', color: 'var(--x-sync)' },
  allocator: { title: 'Allocator', color: 'var(--x-allocator)' },
  copy_staging: { title: 'Copy staging', color: 'var(--x-copy)' },
  launch_call: { title: 'Launch calls', color: 'var(--x-launch)' },
  runtime: { title: 'Other calls', color: 'var(--x-call)' },
  host_communication: { title: 'Host communication', color: 'var(--x-communication)' },
  wait: { title: 'Locks, queues and sleeps', color: 'var(--c-late)' },
  profiler: { title: 'Profiler', color: 'var(--x-unknown)' },
  operator: { title: 'Operators', color: 'var(--x-operator)' },
  python: { title: 'Python', color: 'var(--x-python)' },
  annotation: { title: 'Annotated code', color: 'var(--x-python)' },
  unrecorded: { title: 'Not recorded', color: 'var(--x-unknown)' },
  launch_latency: { title: 'Launch latency', color: 'var(--x-latency)' },
  kernel_gap: { title: 'Kernel gaps', color: 'var(--x-gap)' },
  graph_gap: { title: 'Graph gaps', color: 'var(--x-gap)' },
  waits_for_stream: { title: 'Waits for a stream', color: 'var(--x-gap)' },
  device_wait: { title: 'Device waits', color: 'var(--x-gap)' },
  unlinked: { title: 'No launch recorded', color: 'var(--x-unknown)' },
  before_recording: { title: 'Launched before the recording', color: 'var(--x-unknown)' },
  tail: { title: 'Nothing follows', color: 'var(--x-unknown)' },
};

const lookOf = (category: string): Look | undefined => CAUSES[category] ?? WORK[category];

export const isWork = (category: string): boolean => category in WORK;
export const causeTitle = (cause: string): string => lookOf(cause)?.title ?? cause;
export const causeColor = (cause: string): string => lookOf(cause)?.color ?? 'var(--x-unknown)';
