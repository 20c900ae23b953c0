/** MNIST's idx files, as the server has them. */

export const SIDE = 28;
export const PIXELS = SIDE * SIDE;

export interface Digits {
  readonly count: number;
  /** 0 (paper) to 255 (ink), image after image. */
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

/** Called as bytes come in. */
type Arrived = (bytes: number) => void;

export async function fetchDigits(part: "train" | "t10k", arrived: Arrived): Promise<Digits> {
  const [images, labels] = await Promise.all([
    fetchIdx(`${part}-images-idx3-ubyte`, 3, arrived),
    fetchIdx(`${part}-labels-idx1-ubyte`, 1, arrived),
  ]);
  return { count: labels.length, pixels: images, labels };
}

/** The bytes of all four files. */
export const DIGITS_BYTES = 70_000 * (PIXELS + 1) + 2 * (16 + 8);

/** The data of an idx file, which begins with four bytes and the extent of each axis. */
async function fetchIdx(name: string, axes: number, arrived: Arrived): Promise<Uint8Array> {
  const response = await fetch(`${import.meta.env.BASE_URL}${name}`).catch((error: unknown) => {
    throw new Error(`The digits did not load: ${name} cannot be fetched (${(error as Error).message}).`);
  });
  if (!response.ok) throw new Error(`The digits did not load: for ${name} the server says ${response.status}.`);
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body!.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    arrived(next.value.length);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer(), 4 + 4 * axes);
}
