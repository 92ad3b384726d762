import { defineConfig } from '@playwright/test';
import { ARGUMENTS, chromium } from './tools/chromium.mjs';

export default defineConfig({
  testDir: 'e2e',
  fullyParallel: true,
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [['list']],
  use: {
    viewport: { width: 1500, height: 1000 },
    launchOptions: { executablePath: chromium(), args: ARGUMENTS },
  },
});
