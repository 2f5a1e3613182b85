// Titles and colors of the causes of idle time, and of the work drawn beside it.

interface Style {
  title: string;
  color: string;
}

/** Work is paler than idle time, which is what the track of a device is about. */
const WORK: Record<string, Style> = {
  compute: { title: 'Compute', color: 'color-mix(in srgb, var(--c-kernel) 22%, var(--sf))' },
  exposed_communication: {
    title: 'Exposed communication',
    color: 'color-mix(in srgb, var(--c-communication) 45%, var(--sf))',
  },
  exposed_copy: { title: 'Exposed copies', color: 'color-mix(in srgb, var(--c-memcpy) 45%, var(--sf))' },
};

const CAUSES: Record<string, Style> = {
  data_loading: { title: 'Data loading', color: 'var(--x-loading)' },
  compile: { title: 'Compilation', color: 'var(--x-compile)' },
  sync: { title: 'Synchronization', color: 'var(--x-sync)' },
  allocator: { title: 'Allocator', color: 'var(--x-allocator)' },
  copy_staging: { title: 'Copy staging', color: 'var(--x-copy)' },
  launch_call: { title: 'Launch calls', color: 'var(--x-launch)' },
  runtime: { title: 'Other runtime calls', color: 'var(--x-call)' },
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
  waits_for_stream: { title: 'Waiting for another stream', color: 'var(--x-gap)' },
  device_wait: { title: 'Device-side wait', color: 'var(--x-gap)' },
  unlinked: { title: 'No launch recorded', color: 'var(--x-unknown)' },
  before_recording: { title: 'Before the first recorded work', color: 'var(--x-unknown)' },
  tail: { title: 'After the last kernel', color: 'var(--x-unknown)' },
};

const SUBMITTED = 'work already submitted';

/** What is said of causes for which the host is not late. */
const NO_HOST_DELAY: Record<string, string> = {
  launch_latency: SUBMITTED,
  kernel_gap: SUBMITTED,
  graph_gap: SUBMITTED,
  waits_for_stream: SUBMITTED,
  device_wait: SUBMITTED,
  unlinked: 'launch not recorded',
  before_recording: SUBMITTED,
  tail: 'no further work',
};

/** Return what is said instead of a slice to blame where the host is not late; undefined where it is. */
export const noHostDelay = (cause: string): string | undefined => NO_HOST_DELAY[cause];

const styleOf = (category: string): Style | undefined => CAUSES[category] ?? WORK[category];

export const isWork = (category: string): boolean => category in WORK;
export const causeTitle = (cause: string): string => styleOf(cause)?.title ?? cause;
export const causeColor = (cause: string): string => styleOf(cause)?.color ?? 'var(--x-unknown)';
