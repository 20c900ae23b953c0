/** MNIST's idx files, as the server has them. */

export const SIDE = 28;
export const PIXELS = SIDE * SIDE;

/** The files of a part. A page hands them to its worker without a copy. */
export interface DigitFiles {
  readonly images: Blob;
  readonly labels: Blob;
}

export interface Digits {
  readonly count: number;
  /** 0 (paper) to 255 (ink), image after image. */
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

/** Called as bytes come in, and once for each file with what is to come. */
type Arrived = (bytes: number, expected: number) => void;

export async function fetchDigits(part: "train" | "t10k", arrived: Arrived): Promise<DigitFiles> {
  const [images, labels] = await Promise.all([
    fetchFile(`${part}-images-idx3-ubyte`, arrived),
    fetchFile(`${part}-labels-idx1-ubyte`, arrived),
  ]);
  return { images, labels };
}

async function fetchFile(name: string, arrived: Arrived): Promise<Blob> {
  const response = await fetch(`${import.meta.env.BASE_URL}${name}`).catch((error: unknown) => {
    throw new Error(`The digits did not load: ${name} cannot be fetched (${(error as Error).message}).`);
  });
  if (!response.ok) throw new Error(`The digits did not load: for ${name} the server says ${response.status}.`);
  arrived(0, Number(response.headers.get("content-length")));
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body!.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    arrived(next.value.length, 0);
  }
  return new Blob(parts);
}

export async function digitsOf({ images, labels }: DigitFiles): Promise<Digits> {
  const [pixels, names] = await Promise.all([dataOf(images, 3), dataOf(labels, 1)]);
  return { count: names.length, pixels, labels: names };
}

/** The data of an idx file, which begins with four bytes and the extent of each axis. */
async function dataOf(file: Blob, axes: number): Promise<Uint8Array> {
  return new Uint8Array(await file.arrayBuffer(), 4 + 4 * axes);
}
