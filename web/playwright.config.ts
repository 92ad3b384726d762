import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';
import { ARGUMENTS, chromium } from './tools/chromium.mjs';

if (!existsSync(new URL('dist/index.html', import.meta.url))) {
  throw new Error('There is no page to test: npm run build first.');
}

export default defineConfig({
  testDir: 'e2e',
  fullyParallel: true,
  workers: 2,
  timeout: 300_000,
  expect: { timeout: 30_000 },
  reporter: [['list']],
  use: {
    viewport: { width: 1500, height: 1000 },
    launchOptions: { executablePath: chromium(), args: ARGUMENTS },
  },
});
