/** MNIST's idx files, as the server has them. */

export const SIDE = 28;
export const PIXELS = SIDE * SIDE;

export interface Digits {
  readonly count: number;
  /** 0 (paper) to 255 (ink), image after image. */
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

export async function fetchDigits(part: "train" | "t10k"): Promise<Digits> {
  const [images, labels] = await Promise.all([
    fetchIdx(`${part}-images-idx3-ubyte`, 3),
    fetchIdx(`${part}-labels-idx1-ubyte`, 1),
  ]);
  return { count: labels.length, pixels: images, labels };
}

/** The data of an idx file, which begins with four bytes and the extent of each axis. */
async function fetchIdx(name: string, axes: number): Promise<Uint8Array> {
  const response = await fetch(`${import.meta.env.BASE_URL}${name}`);
  if (!response.ok) throw new Error(`${name}: the server says ${response.status}.`);
  return new Uint8Array(await response.arrayBuffer(), 4 + 4 * axes);
}
