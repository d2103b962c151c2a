// Moves a field for a number and its slider with each other. The browser does it: what a kernel answered would replace
// a number that is being typed.

async function initialize({ model }) {
  const linked = (name) => model.widget_manager.get_model(model.get(name).replace("IPY_MODEL_", ""));
  const [field, slider, steps] = [await linked("field"), await linked("slider"), model.get("steps")];
  // the last step that is not above the number in the field; -1 without a number
  const step = () => {
    const number = parseFloat(field.get("value").replace(/[,_]/g, ""));
    return isNaN(number) ? -1 : Math.max(0, steps.findLastIndex((each) => each <= number));
  };
  const set = (which, trait, value) => {
    which.set(trait, value);
    which.save_changes();
  };
  const follow = () => step() >= 0 && set(slider, "index", step());
  follow();
  field.on("change:value", follow);
  slider.on("change:index", () => {
    if (slider.get("index") !== step()) set(field, "value", String(steps[slider.get("index")]));
  });
}

export default { initialize };
