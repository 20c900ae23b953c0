/** Pictures as canvases have them: red, green, blue and alpha bytes of each pixel. */
import { check, checkOptions, show } from "@opt/core";
import type { HostArray } from "./tensor-dataset";

/** An `ImageData`, or anything like it. */
export interface Picture {
  readonly data: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

export interface ImagesOptions {
  /** 3 for red, green and blue (the default), 1 for the brightness. */
  readonly channels?: 1 | 3;
}

const WHERE = "fromImages";

/** Weights of a pixel's bytes in each channel; the brightness is that of television (ITU-R BT.601). */
const MIXES = { 1: [[0.299, 0.587, 0.114]], 3: [[1], [0, 1], [0, 0, 1]] };

/**
 * Pictures of one size as [pictures, channels, height, width], each number from 0 to 1, as convolutions take them. Alpha is left out.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE for pictures of several sizes
 * @example
 * const white = { data: new Uint8ClampedArray(4 * 28 * 28).fill(255), width: 28, height: 28 }; // context.getImageData(0, 0, 28, 28)
 * const { data, shape } = fromImages([white], { channels: 1 });
 * const x = tensor(data, { shape }); // [1, 1, 28, 28]
 */
export function fromImages(
  images: readonly Picture[],
  options: ImagesOptions = {},
): { readonly data: Float32Array; readonly shape: number[] } & HostArray {
  checkOptions(WHERE, options, { channels: "number" });
  const mix = MIXES[options.channels ?? 3];
  check(
    mix !== undefined,
    "BAD_ARGUMENT",
    WHERE,
    () => `channels must be 1 or 3, got ${show(options.channels)}.`,
    "1 is the brightness.",
  );
  const areImages = Array.isArray(images) && images.length > 0 && Array.from(images).every(isPicture);
  check(
    areImages,
    "BAD_ARGUMENT",
    WHERE,
    () => `needs a list of pictures { data, width, height } with 4 bytes a pixel, got ${show(images)}.`,
    "For example [context.getImageData(0, 0, 28, 28)].",
  );
  const { width, height } = images[0]!;
  const other = images.find((image) => image.width !== width || image.height !== height);
  check(
    other === undefined,
    "BAD_SHAPE",
    WHERE,
    () => `pictures must have one size, got ${width} x ${height} and ${other?.width} x ${other?.height}.`,
    "Draw them on a canvas of one size.",
  );
  const data = new Float32Array(images.length * mix.length * width * height);
  let at = 0;
  for (const image of images) {
    for (const [red = 0, green = 0, blue = 0] of mix) {
      for (let i = 0; i < image.data.length; i += 4)
        data[at++] = (red * image.data[i]! + green * image.data[i + 1]! + blue * image.data[i + 2]!) / 255;
    }
  }
  return { data, shape: [images.length, mix.length, height, width] };
}

const isPicture = (image: Picture | null | undefined) =>
  ArrayBuffer.isView(image?.data) && image.data.length === 4 * image.width * image.height;
