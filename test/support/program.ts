import { join } from 'node:path';

/** The program's source, which tests start as a process of its own. */
export const MAIN = join(import.meta.dir, '../../src/main.ts');
