/** Findings of axe on the page, and pointer targets that are too small. */

import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';

/** Findings of axe, of any impact. */
export async function faults(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page })
    .options({ rules: { 'target-size': { enabled: true } } })
    .analyze();
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
  );
}

/**
 * Pointer targets of less than 24 by 24 pixels. Measured is the rectangle of each control, not of
 * its label. Links within sentences are exempt.
 */
export async function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const within = document.querySelector('dialog[open]') ?? document.body;
    const targets = within.querySelectorAll<HTMLElement>(
      'button, a, input, select, summary, label, [role=slider], [tabindex="0"]',
    );
    return [...targets].flatMap((target) => {
      if (!target.checkVisibility() || target.closest('p a') !== null) return [];
      const { width, height } = target.getBoundingClientRect();
      if (width >= 23.99 && height >= 23.99) return [];
      return [
        `${target.outerHTML.slice(0, 120)} has ${width.toFixed(1)} by ${height.toFixed(1)} pixels`,
      ];
    });
  });
}
