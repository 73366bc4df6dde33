/** Files and folders that only their owner can reach. */
export const OWNER_ONLY_FILE = 0o600;
export const OWNER_ONLY_DIRECTORY = 0o700;

/** The bits of a mode by which the group and everybody else may write. */
export const OTHERS_WRITE = 0o022;

/** The id of the user who may do everything. */
export const ROOT_USER_ID = 0;
