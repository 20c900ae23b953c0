import { contractSuite, whyUnavailable } from "@opt/testkit";
import { builtRules } from "@opt/testkit/built-rules";
import { openCudaBackend } from "./backend";
import { FUSES } from "./launches";

const open = async () => openCudaBackend();
contractSuite({
  name: "cuda",
  open,
  dtypes: ["f32", "f64"],
  rules: builtRules,
  fuses: FUSES,
  skip: await whyUnavailable(open),
});
