import { MODES, type Mode } from '../../questions/types-and-modes.ts';

/** The names of the modes. */
export const MODE_NAMES = { fast: 'Fast', consistent: 'Consistent' } as const satisfies Record<Mode, string>;

/** The modes as the options of a choice. */
export const MODE_OPTIONS = MODES.map((value) => ({ value, label: MODE_NAMES[value] }));
