/** The pages: one entry with its style, and the views that an exported page does without as chunks of their own. */
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: process.env.GOODPUT_UI_OUT ?? '../dist/ui',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // A chunk never imports the entry again by name: an exported page inlines the entry alone.
    rollupOptions: {
      output: { entryFileNames: 'app.js', chunkFileNames: '[name]-[hash].js', assetFileNames: 'app[extname]' },
    },
  },
});
