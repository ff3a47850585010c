export async function main() {
  const order: string[] = [];
  setTimeout(() => order.push("later"), 20);
  setTimeout((text: string) => order.push(text), 1, "soon");
  const cancelled = setTimeout(() => order.push("never"), 5);
  clearTimeout(cancelled);
  let times = 0;
  await new Promise<void>((resolve) => {
    const interval = setInterval(() => { if (++times === 3) { clearInterval(interval); resolve(); } }, 1);
  });
  await new Promise((resolve) => setTimeout(resolve, 40));
  return [order, times];
}
