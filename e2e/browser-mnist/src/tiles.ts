/** Test digits, each with the name that the network gives it. */
import { type Digits, PIXELS, SIDE } from "./digits";

export class Tiles {
  readonly #captions: HTMLElement[] = [];

  constructor(
    target: HTMLElement,
    private readonly digits: Digits,
    readonly positions: Int32Array,
  ) {
    target.replaceChildren();
    for (const position of positions) {
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      figure.append(tileOf(digits, position), caption);
      target.append(figure);
      this.#captions.push(caption);
    }
  }

  /** Wrong names are told by words, not by colour alone: "7, read as 2". A network that has not learned has no names. */
  show(names: ArrayLike<number> | undefined): void {
    this.#captions.forEach((caption, i) => {
      const truth = this.digits.labels[this.positions[i]!]!;
      const right = names === undefined || names[i] === truth;
      caption.className = right ? "right" : "wrong";
      caption.textContent = right ? String(truth) : `${truth}, read as ${names![i]}`;
    });
  }
}

/** Ink, black on nothing. */
function tileOf(digits: Digits, position: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: SIDE, height: SIDE });
  canvas.className = "ink";
  const image = new ImageData(SIDE, SIDE);
  for (let pixel = 0; pixel < PIXELS; pixel++) image.data[4 * pixel + 3] = digits.pixels[position * PIXELS + pixel]!;
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return canvas;
}
