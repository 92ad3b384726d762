/**
 * Path of the browser: `CHROMIUM`, or that of Debian's package. A missing browser is an error, not
 * a skipped test.
 */
import { existsSync } from 'node:fs';

export function chromium() {
  const path = process.env.CHROMIUM || '/usr/bin/chromium';
  if (!existsSync(path)) {
    console.error(
      `\nNO BROWSER: there is no ${path}. Install Debian's package chromium, or set CHROMIUM to one.\n`,
    );
    process.exit(1);
  }
  return path;
}

export const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'];
