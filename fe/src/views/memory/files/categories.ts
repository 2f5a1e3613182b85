/** Colors of what memory is for: each category has its own, whichever others occur. */
const COLORS: Record<string, string> = {
  parameters: 'var(--m-parameter)',
  gradients: 'var(--c-cpu_exec)',
  'optimizer state': 'var(--c-dataloader)',
  activations: 'var(--c-communication)',
  'communication buffers': 'var(--c-memcpy)',
  'KV cache': 'var(--c-kernel)',
  'library workspace': 'var(--c-memset)',
  'CUDA graphs': 'var(--c-runtime)',
  'compiled code': 'var(--c-mem)',
  'awaiting free': 'var(--c-other)',
  mixed: 'var(--c-other)',
  free: 'transparent',
};

export const memoryCategoryColor = (category: string): string => COLORS[category] ?? 'var(--ln-2)';
