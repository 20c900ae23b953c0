/** The drawing pad: pointer, touch, pen and keys put ink on a canvas; what the network sees is that ink as MNIST has its digits. */
import { PIXELS, SIDE } from "./digits";

/** MNIST's digits are scaled into a square of this side, and centred by mass. */
const DIGIT_SIDE = 20;
const PEN = 22;
const KEY_STRIDE = 14;
const KEYS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

interface Spot {
  x: number;
  y: number;
}

export class Pad {
  /** Ink, black on nothing. What is seen is this and the pen of the keyboard. */
  readonly #ink = document.createElement("canvas");
  readonly #pen: CanvasRenderingContext2D;
  #last: Spot | undefined;
  private readonly keyPen: Spot & { down: boolean; shown: boolean };

  /** `changed` is called after each change of the ink. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly changed: () => void,
  ) {
    const { width, height } = canvas;
    Object.assign(this.#ink, { width, height });
    this.#pen = this.#ink.getContext("2d", { willReadFrequently: true })!;
    Object.assign(this.#pen, { lineCap: "round", lineJoin: "round" });
    this.keyPen = { x: width / 2, y: height / 4, down: false, shown: false };
    canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    canvas.addEventListener("pointermove", (event) => this.#follow(event));
    for (const end of ["pointerup", "pointercancel"] as const)
      canvas.addEventListener(end, () => {
        this.#last = undefined;
      });
    canvas.addEventListener("keydown", (event) => this.#press(event));
    canvas.addEventListener("blur", () => this.#showKeyPen(false));
  }

  clear(): void {
    this.#pen.clearRect(0, 0, this.#ink.width, this.#ink.height);
    this.keyPen.down = false;
    this.#update();
  }

  /** Puts a digit of the data on the pad. */
  place(pixels: Uint8Array): void {
    const image = new ImageData(SIDE, SIDE);
    for (let i = 0; i < PIXELS; i++) image.data[4 * i + 3] = pixels[i]!;
    const small = document.createElement("canvas");
    Object.assign(small, { width: SIDE, height: SIDE });
    small.getContext("2d")!.putImageData(image, 0, 0);
    this.#pen.clearRect(0, 0, this.#ink.width, this.#ink.height);
    this.#pen.drawImage(small, 0, 0, this.#ink.width, this.#ink.height);
    this.#update();
  }

  /** The ink as MNIST has its digits: 28 x 28, 0 (paper) to 1 (ink); undefined where nothing is drawn. */
  image(): Float32Array | undefined {
    const { width, height } = this.#ink;
    const alpha = this.#pen.getImageData(0, 0, width, height).data;
    const box = { left: width, right: -1, top: height, bottom: -1 };
    let [mass, x, y] = [0, 0, 0];
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const value = alpha[4 * (row * width + column) + 3]!;
        if (value === 0) continue;
        mass += value;
        x += value * column;
        y += value * row;
        box.left = Math.min(box.left, column);
        box.right = Math.max(box.right, column);
        box.top = Math.min(box.top, row);
        box.bottom = Math.max(box.bottom, row);
      }
    }
    if (mass === 0) return undefined;
    const scale = DIGIT_SIDE / Math.max(box.right - box.left + 1, box.bottom - box.top + 1);
    const small = document.createElement("canvas");
    Object.assign(small, { width: SIDE, height: SIDE });
    const context = small.getContext("2d")!;
    context.imageSmoothingQuality = "high";
    const half = SIDE / 2;
    context.setTransform(scale, 0, 0, scale, half - (x / mass) * scale, half - (y / mass) * scale);
    context.drawImage(this.#ink, 0, 0);
    const seen = context.getImageData(0, 0, SIDE, SIDE).data;
    return Float32Array.from({ length: PIXELS }, (_, i) => seen[4 * i + 3]! / 255);
  }

  #spotOf(event: PointerEvent): Spot {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return {
      x: ((event.clientX - left) / width) * this.#ink.width,
      y: ((event.clientY - top) / height) * this.#ink.height,
    };
  }

  #begin(event: PointerEvent): void {
    if (event.button !== 0) return;
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.focus({ preventScroll: true });
    this.keyPen.shown = false;
    this.#last = this.#spotOf(event);
    this.#line(this.#last, this.#last, widthOf(event));
  }

  #follow(event: PointerEvent): void {
    if (this.#last === undefined) return;
    // Between two frames a fast pen is in many places.
    const places = event.getCoalescedEvents?.() ?? [];
    for (const place of places.length > 0 ? places : [event]) {
      const spot = this.#spotOf(place);
      this.#line(this.#last, spot, widthOf(place));
      this.#last = spot;
    }
  }

  #press(event: KeyboardEvent): void {
    const direction = KEYS[event.key];
    const { keyPen } = this;
    if (direction !== undefined) {
      const from = { ...keyPen };
      keyPen.x = Math.min(Math.max(keyPen.x + KEY_STRIDE * direction[0], PEN), this.#ink.width - PEN);
      keyPen.y = Math.min(Math.max(keyPen.y + KEY_STRIDE * direction[1], PEN), this.#ink.height - PEN);
      if (keyPen.down) this.#line(from, keyPen, PEN);
    } else if (event.key === " ") {
      keyPen.down = !keyPen.down;
      if (keyPen.down) this.#line(keyPen, keyPen, PEN);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.clear();
    } else return;
    event.preventDefault();
    this.#showKeyPen(true);
  }

  #showKeyPen(shown: boolean): void {
    this.keyPen.shown = shown;
    this.#paint();
  }

  #line(from: Spot, to: Spot, width: number): void {
    this.#pen.lineWidth = width;
    this.#pen.beginPath();
    this.#pen.moveTo(from.x, from.y);
    this.#pen.lineTo(to.x + 0.01, to.y); // canvases leave out lines of no length: a tap is a dot
    this.#pen.stroke();
    this.#update();
  }

  #update(): void {
    this.#paint();
    this.changed();
  }

  #paint(): void {
    const context = this.canvas.getContext("2d")!;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.#ink, 0, 0);
    const { x, y, down, shown } = this.keyPen;
    if (!shown) return;
    context.beginPath();
    context.arc(x, y, PEN / 2, 0, 2 * Math.PI);
    context.lineWidth = 3;
    context.strokeStyle = "#808080";
    context.setLineDash(down ? [] : [6, 5]);
    context.stroke();
  }
}

/** A pen that is pressed writes broader; fingers and mice have no pressure worth it. */
function widthOf({ pointerType, pressure }: PointerEvent): number {
  return pointerType === "pen" ? PEN * (0.6 + 0.8 * pressure) : PEN;
}
