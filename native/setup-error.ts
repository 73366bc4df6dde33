/**
 * A model cannot be opened on this machine as it was asked for: its weights, a device or a compiler is missing or
 * unfit. The message is one sentence or more for whoever runs the service, and says what to do.
 */
export class SetupError extends Error {
  override readonly name: string = 'SetupError';
}

/** The device that was asked for is not there or cannot be used. */
export class DeviceUnavailable extends SetupError {
  override readonly name = 'DeviceUnavailable';
}
