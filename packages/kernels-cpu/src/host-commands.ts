/** The commands by which algorithms of the host are given JavaScript's own arrays. */
import type { HostArguments } from "@opt/core/backend";
import { Fields } from "./fields";

type Turns = HostArguments["fourierTransform"]["fine"];
const TURNS = new Fields<Turns>("Turns").doubles("cosines", "sines");

const FOURIER = new Fields<HostArguments["fourierTransform"]>("FourierTransform")
  .integers("rows", "columns")
  .group("ofRows", TURNS, ({ ofRows }) => ofRows)
  .group("ofColumns", TURNS, ({ ofColumns }) => ofColumns)
  .group("fine", TURNS, ({ fine }) => fine)
  .doubles("re", "im")
  .field("from", "bytes", (to, { from }) => to.array(from))
  .field("to", "bytes", (to, given) => to.array(given.to))
  .flag("inverse", ({ inverse }) => inverse)
  .number("scale", "number", ({ scale }) => scale);

export const HOST_COMMANDS: { readonly [Name in keyof HostArguments]: Fields<HostArguments[Name]> } = {
  reflectRows: new Fields<HostArguments["reflectRows"]>("ReflectRows")
    .integers("width", "from", "to", "first", "begin", "end")
    .flag("backwards", ({ backwards }) => backwards)
    .doubles("rows", "v", "taus"),
  rotateRows: new Fields<HostArguments["rotateRows"]>("RotateRows")
    .integers("height", "width", "count")
    .field("firsts", "readsIndices", (to, { firsts }) => to.array(firsts))
    .field("seconds", "readsIndices", (to, { seconds }) => to.array(seconds))
    .doubles("rows", "cosines", "sines"),
  tridiagonalUpdate: new Fields<HostArguments["tridiagonalUpdate"]>("TridiagonalUpdate")
    .integers("n", "length")
    .doubles("a", "v", "w", "u", "product"),
  sumOfRows: new Fields<HostArguments["sumOfRows"]>("SumOfRows")
    .integers("start", "width", "count", "length")
    .doubles("a", "factors", "sums"),
  bidiagonalUpdate: new Fields<HostArguments["bidiagonalUpdate"]>("BidiagonalUpdate")
    .integers("start", "width", "count", "length")
    .number("scale", "number", ({ scale }) => scale)
    .number("tau", "number", ({ tau }) => tau)
    .doubles("a", "factors", "sums", "v"),
  fourierTransform: FOURIER,
  realFourierTransform: new Fields<HostArguments["realFourierTransform"]>("RealFourierTransform")
    .group("half", FOURIER, (given) => given)
    .group("halves", TURNS, ({ halves }) => halves)
    .doubles("halfRe", "halfIm"),
};
