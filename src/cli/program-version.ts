import manifest from '../../package.json' with { type: 'json' };

/** The version of this program, which databases record as their writer's. */
export const PROGRAM_VERSION = manifest.version;
