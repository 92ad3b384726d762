export function chromium(): string;
export const ARGUMENTS: string[];
