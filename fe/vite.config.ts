/// <reference types="vitest/config" />
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// TensorBoard imports `index.js` and calls its render(); everything else has a hashed name beside it.
export default defineConfig({
  base: './',
  plugins: [react()],
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
    rollupOptions: { output: { entryFileNames: 'assets/[name]-[hash].js' } },
  },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}'] },
});
