/** Bytes done so far, of how many. */
export type ProgressCallback = (done: { readonly bytes: number; readonly total: number }) => void;

/** Adds up what is reported piece by piece. */
export function reporter(callback: ProgressCallback | undefined, total: number): (bytes: number) => void {
  let done = 0;
  return (bytes) => {
    done += bytes;
    callback?.({ bytes: done, total });
  };
}
