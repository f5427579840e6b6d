// The model's text becomes text nodes, never markup. One chip takes part in Tab order; arrow keys move focus to
// its neighbours.
export default function ({ data, parentElement, setStateValue }) {
  const box = parentElement.querySelector(".tokens");
  const chips = data.chips.map((chip, number) => {
    const button = document.createElement("button");
    button.textContent = chip.text;
    button.title = chip.title;
    button.setAttribute("aria-label", chip.title);
    button.setAttribute("aria-pressed", number === data.chosen);
    button.tabIndex = number === data.chosen ? 0 : -1;
    button.style.setProperty("--doubt", chip.doubt + "%");
    button.onclick = () => setStateValue("chosen", number);
    button.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) chips[Math.min(Math.max(number + step, 0), chips.length - 1)].focus();
    };
    return button;
  });
  const focused = [...box.children].indexOf(box.getRootNode().activeElement);
  box.replaceChildren(...chips);
  if (focused >= 0) chips[Math.min(focused, chips.length - 1)].focus();
}
