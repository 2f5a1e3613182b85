// The page as one classic script and one style sheet, which `torch-tb-profiler report` writes into its files: no
// module, worker or request, because a browser gives none of these to a page from disk.
import { resolve } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { scopedName } from './vite.config';

export default defineConfig({
  plugins: [react()],
  resolve: { alias: [{ find: './startWorker', replacement: resolve('src/timeline/tiles/noWorker.ts') }] },
  css: { modules: { generateScopedName: scopedName } },
  build: {
    outDir: '../torch_tb_profiler/static/report',
    modulePreload: false,
    assetsInlineLimit: Infinity,
    chunkSizeWarningLimit: 2000,
    cssCodeSplit: false,
    rollupOptions: {
      input: 'src/report.ts',
      transform: { define: { 'import.meta': '{}' } }, // a classic script has none
      output: {
        format: 'iife',
        inlineDynamicImports: true,
        entryFileNames: 'report.js',
        assetFileNames: 'report[extname]',
      },
    },
  },
});
