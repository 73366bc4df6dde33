import manifest from '../../package.json' with { type: 'json' };

/** The version of this program, which databases keep of who wrote them. */
export const PROGRAM_VERSION = manifest.version;
