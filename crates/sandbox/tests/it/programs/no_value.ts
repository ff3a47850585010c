const unused: number = 1;
function helper(): void {}
