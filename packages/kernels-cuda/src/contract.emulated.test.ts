/** The same kernels and the same host code with the CPU in the GPU's place: what they compute, not how fast. */
import { contractSuite, whyUnavailable } from "@opt/testkit";
import { builtRules } from "@opt/testkit/built-rules";
import { openEmulated } from "../testing/emulator";
import { FUSES } from "./launches";

const open = async () => openEmulated();
contractSuite({
  name: "cuda",
  open,
  dtypes: ["f32", "f64"],
  rules: builtRules,
  fuses: FUSES,
  skip: await whyUnavailable(open),
});
