/// <reference types="vitest/config" />
import { basename, dirname } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { thirdPartyNotices } from './scripts/third-party-notices';

const notices = thirdPartyNotices();

/** `trace-Canvas_stage`: a class says in the developer tools which component draws it. */
export function scopedName(name: string, file: string): string {
  return `${basename(dirname(file))}-${basename(file, '.module.css')}_${name}`;
}

// TensorBoard imports `index.js` and calls its render(); everything else has a hashed name beside it.
export default defineConfig({
  base: './',
  plugins: [react(), notices.page],
  css: { modules: { generateScopedName: scopedName } },
  build: {
    outDir: '../torch_tb_profiler/static',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: 'src/index.tsx',
      preserveEntrySignatures: 'exports-only',
      output: {
        entryFileNames: 'index.js',
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: 'assets/[name]-[hash][extname]',
      },
    },
  },
  worker: {
    format: 'es',
    plugins: () => [notices.worker],
    rollupOptions: { output: { entryFileNames: 'assets/[name]-[hash].js' } },
  },
  test: {
    environment: 'happy-dom',
    include: ['src/**/*.test.{ts,tsx}'],
    setupFiles: 'src/testing/setup.ts',
    // A window and the modules are made once per worker, not once per file: a third of the work.
    isolate: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
