/**
 * The pages, built twice from one code: for the server in chunks, the views one looks at first in the entry; and, in mode
 * `page`, as one file for exported reports, without the views that need a server.
 */
import { defineConfig } from 'vite';

export default defineConfig(({ mode }) => {
  const page = mode === 'page';
  return {
    root: import.meta.dirname,
    base: './',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: process.env.GOODPUT_UI_OUT ?? '../dist/ui',
      emptyOutDir: !page,
      target: 'es2022',
      modulePreload: false,
      cssCodeSplit: false,
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      rollupOptions: {
        input: page ? 'ui/main.tsx' : 'ui/index.html',
        output: page
          ? { entryFileNames: 'page.js', assetFileNames: 'page[extname]', codeSplitting: false }
          : { entryFileNames: 'app.js', chunkFileNames: '[name]-[hash].js', assetFileNames: 'app[extname]' },
      },
    },
  };
});
